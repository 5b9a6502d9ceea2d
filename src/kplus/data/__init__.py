"""Where rows come from: arrays, frames and files, cut into blocks."""
