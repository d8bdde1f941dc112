"""A criterion that runs the received model on the client's examples."""

from tff_pmc import criteria


def wrong(output, y):
    import tensorflow as tf

    labels = tf.argmax(output.predictions, axis=-1, output_type=tf.int32)
    return tf.reduce_mean(tf.cast(tf.not_equal(labels, y), tf.float32))


criteria.register(
    criteria.Criterion(
        "WRONG",
        "share of wrong labels",
        "ours",
        value=lambda client: client.mean_on_received(wrong),
        needs_model=True,
    )
)
