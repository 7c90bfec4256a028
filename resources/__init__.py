"""Resources of this code location: configuration bound to the library's resources, no logic."""
