"""What the pages ask of the lake, a module a page: plain values and data frames, no drawing."""
