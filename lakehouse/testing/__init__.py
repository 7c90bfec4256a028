"""Support for tests of this library and of code that uses it: a reference model, strategies, fault points, servers."""
