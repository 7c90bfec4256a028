"""Outside-in differential checks by the hundred thousand: python -m lakehouse.testing.campaign."""
