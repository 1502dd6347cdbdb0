"""Records of files, frames and messages as typed rows."""
