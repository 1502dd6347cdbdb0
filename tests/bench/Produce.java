import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Produce BROKER TOPIC PARTITIONS COUNT [RATE]: events as JSON, `{"event":{"k":"k7","v":123,"at":1700000000000}}`: of a
 * hundred keys, with values up to 10,000, ten in each millisecond. They are the same each time. With a RATE, so many a
 * second, and each has the time at which it was sent.
 */
class Produce {
    public static void main(String[] a) throws InterruptedException {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("linger.ms", "20");
        p.put("batch.size", "1000000");
        p.put("buffer.memory", "64000000");
        p.put("acks", "all");
        int partitions = Integer.parseInt(a[2]);
        long count = Long.parseLong(a[3]);
        double rate = a.length > 4 ? Double.parseDouble(a[4]) / 1000 : 0;
        long began = System.currentTimeMillis();
        Random random = new Random(7);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            for (long i = 0; i < count; i++) {
                long at = 1_700_000_000_000L + i / 10;
                if (rate > 0) {
                    long due = began + (long) (i / rate);
                    while ((at = System.currentTimeMillis()) < due) {
                        Thread.sleep(5);
                    }
                }
                String body = "{\"event\":{\"k\":\"k" + random.nextInt(100) + "\",\"v\":" + random.nextInt(10_000)
                    + ",\"at\":" + at + "}}";
                producer.send(new ProducerRecord<>(a[1], (int) (i % partitions), null, body.getBytes()));
            }
        }
    }
}
