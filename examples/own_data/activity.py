"""A criterion: how much of a device is not resting."""

from tff_pmc import criteria


def share_of_movement(client):
    import tensorflow as tf

    # tf.not_equal, because != compares Python objects in the graphs that TFF builds.
    return tf.reduce_mean(tf.cast(tf.not_equal(client.y, 0), tf.float32))


criteria.register(
    criteria.Criterion("MO", "share of movement", "ours", share_of_movement)
)
