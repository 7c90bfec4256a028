"""Changes to a lake through the console, and who may make them: actions, roles, and network access."""
