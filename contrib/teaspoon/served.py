"""A model as Hugging Face has it, asked many things at once."""
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

BATCH = 64


class Folder:
    def __init__(self, path):
        logging.disable_progress_bar()
        self.tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.ends = self.model.generation_config.eos_token_id

    def answers(self, texts, most, temperature=0.0):
        """For each text the tokens that follow, its end included. Texts of like length go
        together, as the shorter ones of a batch are padded."""
        out = [[]] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for at in range(0, len(order), BATCH):
            some = order[at : at + BATCH]
            asked = self.tokenizer([texts[i] for i in some], return_tensors="pt", padding=True,
                                   return_token_type_ids=False)
            how = {"do_sample": False}
            if temperature:
                how = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
            with torch.no_grad():
                told = self.model.generate(**asked, max_new_tokens=most, **how)
            for i, reply in zip(some, told[:, asked["input_ids"].shape[1] :].tolist()):
                ends = [n for n, token in enumerate(reply) if token in self.ends]
                out[i] = reply[: ends[0] + 1] if ends else reply
        return out

    def replies(self, texts, most):
        """The same as text, greedy, without its end."""
        return [reply.strip() for reply in self.tokenizer.batch_decode(
            self.answers(texts, most), skip_special_tokens=True)]

    def logits(self, prompt, answer):
        """Before each token of an answer."""
        ids = self.tokenizer(prompt)["input_ids"]
        with torch.no_grad():
            every = self.model(torch.tensor([ids + answer])).logits[0]
        return every[len(ids) - 1 : -1]
