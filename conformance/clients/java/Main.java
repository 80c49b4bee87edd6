import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The client program of Kafka's own Java client: the flags and events of package program (../../program), in Java. */
public class Main {
  static final Map<String, String> job = new HashMap<>();
  static volatile boolean stop;

  static String get(String flag, String otherwise) { return job.getOrDefault(flag, otherwise); }
  static int number(String flag) { return Integer.parseInt(get(flag, "0")); }
  static String value(int i) { return "v-" + i + "-" + "abcdefghij".repeat(10); }

  static synchronized void emit(String event, String more) { System.out.println("{\"event\":\"" + event + "\"" + more + "}"); }
  static void record(String event, int partition, long offset, String value) {
    emit(event, ",\"partition\":" + partition + ",\"offset\":" + offset + ",\"value\":\"" + value + "\"");
  }

  /** What Go prints: 0s, 2ms, 1.5s. */
  static long milliseconds(String text) {
    return text.endsWith("ms") ? Long.parseLong(text.substring(0, text.length() - 2)) : (long) (1000 * Double.parseDouble(text.substring(0, text.length() - 1)));
  }

  static <T> T patiently(String what, Callable<T> attempt) throws Exception {
    for (long until = System.currentTimeMillis() + 120_000; ; Thread.sleep(100)) {
      try {
        return attempt.call();
      } catch (Exception e) {
        if (System.currentTimeMillis() > until) throw new Exception(what, e);
      }
    }
  }

  static Properties config() {
    Properties p = new Properties();
    p.put("bootstrap.servers", get("bootstrap", ""));
    p.put("client.id", "client");
    p.put("key.serializer", StringSerializer.class);
    p.put("value.serializer", StringSerializer.class);
    p.put("key.deserializer", StringDeserializer.class);
    p.put("value.deserializer", StringDeserializer.class);
    return p;
  }

  static void produce() throws Exception {
    Properties p = config();
    p.put("compression.type", get("compression", "none"));
    p.put("enable.idempotence", job.containsKey("idempotent"));
    p.put("acks", "all");
    p.put("linger.ms", 20);
    AtomicReference<Exception> failed = new AtomicReference<>();
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
      for (int i = number("from"); i < number("from") + number("count"); i++) {
        String value = value(i);
        producer.send(new ProducerRecord<>(get("topic", ""), "k-" + i, value), (at, e) -> {
          if (e != null) failed.set(e);
          else record("acked", at.partition(), at.offset(), value);
        });
        Thread.sleep(milliseconds(get("pace", "0s")));
      }
    }
    if (failed.get() != null) throw failed.get();
  }

  static void consume() {
    Properties p = config();
    p.put("group.id", get("group", ""));
    p.put("enable.auto.commit", false);
    p.put("auto.offset.reset", "earliest");
    p.put("max.poll.records", 50);
    p.put("metadata.max.age.ms", 1000);
    p.put("group.protocol", get("protocol", "classic"));
    if (get("protocol", "classic").equals("classic")) {
      p.put("session.timeout.ms", 6000);
      p.put("heartbeat.interval.ms", 500);
      String assignor = Map.of("range", "RangeAssignor", "roundrobin", "RoundRobinAssignor", "sticky", "StickyAssignor", "cooperative-sticky", "CooperativeStickyAssignor").get(get("assignor", ""));
      p.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
    }
    int count = number("count"), taken = 0;
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p)) {
      Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
      TreeSet<Integer> held = new TreeSet<>();
      consumer.subscribe(List.of(get("topic", "")), new ConsumerRebalanceListener() {
        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) { change(partitions, true); }
        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
          try {
            commit(consumer, next);
          } catch (KafkaException e) {
            System.err.println("commit: " + e); // what is not committed comes again, to the next owner
          }
          change(partitions, false);
        }
        @Override public void onPartitionsLost(Collection<TopicPartition> partitions) { change(partitions, false); }

        void change(Collection<TopicPartition> partitions, boolean took) {
          for (TopicPartition t : partitions) {
            if (took) held.add(t.partition());
            else held.remove(t.partition());
            if (!took) next.remove(t);
          }
          emit("assigned", ",\"partitions\":" + held);
        }
      });
      while (!stop && (count == 0 || taken < count)) {
        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100))) {
          if (count > 0 && taken == count) break;
          taken++;
          record("record", r.partition(), r.offset(), r.value());
          next.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        }
      }
      commit(consumer, next);
    }
  }

  static void commit(KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> next) {
    if (next.isEmpty()) return;
    consumer.commitSync(next);
    next.clear();
    emit("committed", "");
  }

  static void seek() throws Exception {
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config())) {
      String topic = get("topic", "");
      Map<TopicPartition, Long> times = new HashMap<>();
      for (var info : patiently("partitions", () -> consumer.partitionsFor(topic))) {
        times.put(new TopicPartition(topic, info.partition()), Long.parseLong(get("time", "0")));
      }
      consumer.assign(times.keySet());
      patiently("offsets by time", () -> consumer.offsetsForTimes(times)).forEach((at, found) -> {
        emit("offset", ",\"partition\":" + at.partition() + ",\"offset\":" + found.offset());
        consumer.seek(at, found.offset());
      });
      for (int taken = 0; taken < number("count") && !stop; ) {
        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100))) {
          taken++;
          record("record", r.partition(), r.offset(), r.value());
        }
      }
    }
  }

  /** Does what may have been done by an earlier try whose answer was lost. */
  static void unless(Class<? extends Exception> done, Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (ExecutionException e) {
      if (!done.isInstance(e.getCause())) throw e;
    }
  }

  static void same(String what, Object got, Object want) throws Exception {
    if (!got.equals(want)) throw new Exception(what + ": " + got + ", expected " + want);
  }

  interface Call { void call() throws Exception; }

  static void call(String name, Call c) throws Exception {
    patiently(name, () -> { c.call(); return null; });
    emit("admin", ",\"value\":\"" + name + "\"");
  }

  static void admin() throws Exception {
    try (Admin admin = Admin.create(config())) {
      for (int i = 0; i < number("count"); i++) {
        String topic = get("topic", "") + "-" + i, group = get("topic", "") + "-group-" + i;
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Callable<Integer> partitions = () -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        Callable<String> retention = () -> admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value();
        call("create a topic", () -> unless(TopicExistsException.class,
            () -> admin.createTopics(List.of(new NewTopic(topic, 2, (short) 3).configs(Map.of("retention.ms", "3600000")))).all().get()));
        call("describe it", () -> same("partitions", partitions.call(), 2));
        call("read its configuration", () -> same("retention.ms", retention.call(), "3600000"));
        call("add partitions", () -> unless(InvalidPartitionsException.class, () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get()));
        call("describe the larger one", () -> same("partitions", partitions.call(), 4));
        call("alter its configuration", () -> admin.incrementalAlterConfigs(
            Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET)))).all().get());
        call("read the new configuration", () -> same("retention.ms", retention.call(), "7200000"));
        call("commit for a group without members",
            () -> admin.alterConsumerGroupOffsets(group, Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(0))).all().get());
        call("list groups", () -> same("listed", admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), true));
        call("describe the group", () -> same("state", admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState().toString(), "Empty"));
        call("delete the group", () -> unless(GroupIdNotFoundException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get()));
        call("delete the topic", () -> unless(UnknownTopicOrPartitionException.class, () -> admin.deleteTopics(List.of(topic)).all().get()));
        call("describe the cluster", () -> admin.describeCluster().nodes().get());
        Thread.sleep(milliseconds(get("pace", "0s")));
      }
    }
  }

  public static void main(String[] args) throws Exception {
    for (int i = 1; i < args.length; i++) {
      String flag = args[i].substring(1);
      job.put(flag, flag.equals("idempotent") ? "true" : args[++i]);
    }
    Thread listener = new Thread(() -> { // "stop" on standard input, or its end
      try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
        for (String line = lines.readLine(); line != null && !line.equals("stop"); line = lines.readLine()) { }
      } catch (java.io.IOException e) {
        System.err.println("standard input: " + e);
      }
      stop = true;
    });
    listener.setDaemon(true);
    listener.start();
    Properties about = new Properties();
    about.load(KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties"));
    emit("client", ",\"value\":\"" + about.getProperty("version") + "\"");
    switch (args[0]) {
      case "produce" -> produce();
      case "consume" -> consume();
      case "seek" -> seek();
      case "admin" -> admin();
      default -> throw new IllegalArgumentException(args[0]);
    }
    System.exit(0);
  }
}
