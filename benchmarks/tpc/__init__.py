"""Every query of TPC-H and TPC-DS over a lake, beside the same engine on plain files of the same rows."""
