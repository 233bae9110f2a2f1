"""Writes vectors.jsonl: random agents and tasks, assessed by Bindu itself.

    pip install bindu==2026.36.7    (Python 3.12)
    python vectors.py > vectors.jsonl

Lists that Bindu takes from a set are sorted, and those of parley are before they are compared.
"""

import asyncio
import json
import random
from dataclasses import asdict

from bindu.server.endpoints.negotiation import _build_negotiation_response as response
from bindu.server.negotiation.capability_calculator import CapabilityCalculator, ScoringWeights
from bindu.settings import app_settings

app_settings.negotiation.use_embeddings = False
R = random.Random(20260000)
WORDS = """pdf invoice table extract image translate spanish technical manual legal contract review summary
data clean csv json report x ab ocr text_extraction PDF Überweisung straße İstanbul ΣΟΦΟΣ naïve 42 3d audio-video
web_search crawl price quote logistics freight customs""".split()
TYPES = ["application/pdf", "application/json", "text/plain", "image/png", "Text/Plain"]
TOOLS = ["pdf_parser", "web_search", "ocr", "calculator", "Browser"]


def some(choices, most, least=0):
    return R.sample(choices, R.randint(least, min(most, len(choices))))


def text(most):
    glue = R.choice([" ", " ", "  ", ", ", "-", "_", ". "])
    return glue.join(R.choice(WORDS) for _ in range(R.randint(1, most)))


def skill(i):
    s = {}
    if R.random() < 0.95:
        s["id"] = f"skill-{i}"
    if R.random() < 0.95:
        s["name"] = text(3)
    s["tags"] = [text(2) for _ in range(R.randint(0, 4))]
    s["input_modes"], s["output_modes"] = some(TYPES, 4), some(TYPES, 4)
    s["allowed_tools"] = some(TOOLS, 2)
    if R.random() < 0.6:
        s["capabilities_detail"] = {text(2).replace(" ", "_"): {"supported": True} for _ in range(R.randint(0, 3))}
    if R.random() < 0.6:
        s["performance"] = {"avg_processing_time_ms": R.choice([0, 1, 120, 800, 2000, 2500.5, 9000])}
    elif R.random() < 0.1:
        s["performance"] = "fast"
    if R.random() < 0.7:
        s["assessment"] = {}
        if R.random() < 0.8:
            s["assessment"]["keywords"] = [R.choice(WORDS) for _ in range(R.randint(0, 6))]
        if R.random() < 0.5:
            s["assessment"]["specializations"] = [
                R.choice([{"domain": text(1), "confidence_boost": R.choice([0.3, 0.1, 0.05, 1, -0.2, 0.123456])}, {"confidence_boost": 0.5}, {}, "none", 7])
                for _ in range(R.randint(0, 3))
            ]
        if R.random() < 0.3:
            s["assessment"]["anti_patterns"] = [text(1) for _ in range(R.randint(0, 2))]
    elif R.random() < 0.1:
        s["assessment"] = ["keywords"]
    return s


def task():
    t = {"task_summary": text(9)}
    if R.random() < 0.006:
        t["task_summary"] = "pdf " * 2600
    if R.random() < 0.4:
        t["task_details"] = text(12)
    for name, choices, often in [("input_mime_types", TYPES, 0.3), ("output_mime_types", TYPES, 0.3), ("required_tools", TOOLS, 0.15), ("forbidden_tools", TOOLS, 0.1)]:
        if R.random() < often:
            t[name] = some(choices, 3)
    if R.random() < 0.4:
        t["max_latency_ms"] = R.choice([0, 1, 500, 1000, 3000, 5000, 10000, 2499.5])
    if R.random() < 0.5:
        t["max_cost_amount"] = R.choice(["0.001", "1", "$2.50", "1.2.3", "", "0", "free", 0.5, 3, "1,000.00", "-1", "٣"])
    if R.random() < 0.4:
        t["min_score"] = R.choice([0, 0.2, 0.35, 0.5, 0.7, 1])
    if R.random() < 0.4:
        t["weights"] = {k: R.choice([0, 0.1, 0.25, 1, 2, 7.5]) for k in some(["skill_match", "io_compatibility", "performance", "load", "cost"], 5)}
    return t


def price():
    if R.random() < 0.5:
        return None
    return {"amount": R.choice(["0.0005", "0.001", "0.7", "2", "$1.50", "1,000", "1.2.3", "", "0", 0.25, 4]), "currency": "USD"}


def main():
    for _ in range(300):
        skills, t, pricing = [skill(i) for i in range(R.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5]))], task(), price()
        queue = R.choice([None, 0, 1, 2, 7, 100])
        asked = dict(t)
        weights = ScoringWeights(**asked.pop("weights")) if "weights" in asked else None
        result = asyncio.run(CapabilityCalculator(skills, pricing).calculate(queue_depth=queue, weights=weights, **asked))
        want = response(result)
        for name in ("matched_tags", "matched_capabilities"):
            if name in want:
                want[name].sort()
        print(json.dumps({"skills": skills, "pricing": pricing, "queue": queue, "task": t, "want": want}, ensure_ascii=False))


main()
