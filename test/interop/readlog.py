"""readlog.py URL KEY reads a public log by tlog-scales: its checkpoint, every leaf with a
proof, and consistency with smaller trees."""
import sys

from tlog_scales.backend import HttpBackend
from tlog_scales.reader import TilesReader
from tlog_scales.signing import Vkey
from tlog_scales.tiles import leaf_hash

url, key = sys.argv[1:]
log = TilesReader(HttpBackend(url))
checkpoint = log.get_checkpoint()
vkey = Vkey.from_string(key)
assert checkpoint.origin == vkey.name, checkpoint.origin
checkpoint.verify(vkey)
assert log.calculate_root_hash() == checkpoint.root_hash, "the tiles have another root"
for index in range(checkpoint.size):
    leaf = log.get_entry(index)
    log.get_inclusion_proof(index, checkpoint.size).check(leaf_hash(leaf), checkpoint.root_hash)
for before in range(1, checkpoint.size, 31):
    log.get_consistency_proof(before, checkpoint.size).check(log.mth(0, before), checkpoint.root_hash)
print(checkpoint.size)
