"""What transfers share: links of a network with max-min fair shares, network cards, local disks.

Media and the file system call it.  It knows flows and bytes, and no files.
"""
