"""Query nodes: processes that hold segments and answer statements at one version of the lake, and their clients."""
