# Checks an agreement by docs/PROTOCOL.md alone: id, salts, digests, hash and signatures.
import base64
import hashlib
import hmac
import json
import sys

import rfc8785
from nacl.signing import VerifyKey

HASHED = ["agreement_id", "negotiation_id", "parties", "category", "terms_digests", "effective_from", "effective_until", "ccc", "regulated_obligations"]
CROCKFORD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def digest(value):
    return "sha256-" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def unpadded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def raw(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def key(nkey):  # one byte of prefix, the key, a checksum
    return VerifyKey(base64.b32decode(nkey + "=" * (-len(nkey) % 8))[1:33])


def did(agent):
    return "did:web:" + agent.removeprefix("agent://").replace("/", ":")


with open(sys.argv[1], "rb") as file:
    data = file.read()
a = json.loads(data)
assert rfc8785.dumps(a) == data, "the file is not canonical"
for name, term in a["terms"].items():
    assert a["terms_digests"][name] == digest([a["salts"][name], name, term]), name
assert a["agreement_hash"] == digest({name: a[name] for name in HASHED if name in a}), "agreement_hash"
keys = {did(agent): key(nkey) for agent, nkey in a["evidence"]["keys"].items()}
assert list(a["signatures"]) == sorted(a["parties"]), "signatures"
for party, signature in a["signatures"].items():
    keys[party].verify(a["agreement_hash"].encode(), raw(signature))
if "offer" in a["evidence"]:
    offer = a["evidence"]["offer"]
    body = offer["content"]["body"]
    assert a["terms"] == body["terms"], "terms"
    for name in a["terms"]:
        assert a["salts"][name] == unpadded(hmac.digest(raw(body["agreementSalt"]), name.encode(), "sha256")), name
    sum = hashlib.sha256(f"{offer['sessionId']}:{body['proposalId']}".encode()).digest()
    assert a["agreement_id"] == "agr_" + base64.b32encode(sum).decode().translate(CROCKFORD)[:26], "agreement_id"
