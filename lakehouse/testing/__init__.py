"""For tests of this library and of code on it: a reference model, strategies, fault points and real servers."""
