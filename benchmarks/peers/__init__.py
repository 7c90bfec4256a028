"""Side by side: this lakehouse and its peers on the same work, in the same run, in turn."""
