"""receipts.py FILE verifies the COSE Receipts of a bundle of evidence by scitt-cose."""
import base64
import json
import sys

from scitt_cose import verify_receipt


def canonical(leaf: dict) -> str:
    """RFC 8785 of a leaf, which holds texts only."""
    return json.dumps(leaf, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode().hex()


bundle = json.load(open(sys.argv[1], encoding="utf-8"))
receipts = bundle["receipts"]
key = receipts["key"]
leaves = {d["agreement_id"]: d["log"] for d in bundle["agreements"]}
pairs = [(receipt, leaves[name]) for name, receipt in receipts["agreements"].items()]
pairs.append((receipts["session"], bundle["ended"]))
refused = 0
for text, place in pairs:
    receipt, leaf = base64.b64decode(text), canonical(place["leaf"])
    found = verify_receipt(receipt, leaf_entry_hex=leaf, log_public_key_pem=key)
    assert found.ok, found.errors
    assert found.leaf_index == place["index"], found
    assert found.tree_size == int(place["checkpoint"].split("\n")[1]), found
    assert found.issuer and found.subject, found
    assert not verify_receipt(receipt, leaf_entry_hex=leaf + "20", log_public_key_pem=key).ok, "another leaf"
    for i in range(len(receipt)):
        changed = bytes([*receipt[:i], receipt[i] ^ 1, *receipt[i + 1 :]])
        assert not verify_receipt(changed, leaf_entry_hex=leaf, log_public_key_pem=key).ok, f"byte {i} was changed"
        refused += 1
print(f"{len(pairs)} receipts, {refused} changes refused")
