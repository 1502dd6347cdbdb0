import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Produce BROKER TOPIC PARTITIONS COUNT: trades as JSON, `{"event":{"symbol":"S7","price":12.5,"volume":3}}`. */
class Produce {
    public static void main(String[] a) {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("linger.ms", "20");
        p.put("batch.size", "1000000");
        p.put("buffer.memory", "64000000");
        int partitions = Integer.parseInt(a[2]);
        long count = Long.parseLong(a[3]);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            for (long i = 0; i < count; i++) {
                String body = "{\"event\":{\"symbol\":\"S" + i * 7919 % 1000 + "\",\"price\":" + i % 997 + ".5,\"volume\":" + i + "}}";
                producer.send(new ProducerRecord<>(a[1], (int) (i % partitions), null, body.getBytes()));
            }
        }
    }
}
