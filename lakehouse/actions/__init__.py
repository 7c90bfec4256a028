"""What people do to a lake through the console, and who may: actions, roles, and whom the console lets near."""
