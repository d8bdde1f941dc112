"""The criteria FEDERATED and LOCAL: is a client's local model better than all's?

They are the accuracies, on the client's training examples, of the model that it
receives and of the one that it has trained. In no priority they weigh nothing, and are
recorded for each client of each round.
"""

from tff_pmc import criteria
from tff_pmc._lazy import tf


def right(output, y):
    """Returns the share of right labels in a batch."""
    labels = tf.argmax(output.predictions, axis=-1, output_type=tf.int32)
    return tf.reduce_mean(tf.cast(tf.equal(labels, y), tf.float32))


FEDERATED = criteria.Criterion(
    "FEDERATED",
    "accuracy of the received model",
    "ours",
    value=lambda client: client.mean_on_received(right),
    needs_model=True,
)
LOCAL = criteria.Criterion(
    "LOCAL",
    "accuracy of the locally trained model",
    "ours",
    value=lambda client: client.mean_on_trained(right),
    needs_model=True,
)
criteria.register(FEDERATED)
criteria.register(LOCAL)
