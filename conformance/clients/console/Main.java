import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * The client program of the console tools that come with Kafka: the flags and events of package program (../../program). It calls the main method of each
 * tool's class, as the shell scripts do, but in one virtual machine, because each new one costs seconds; and turns what the tools print into events.
 */
public class Main {
  static final Map<String, String> job = new HashMap<>();
  static final PrintStream events = System.out;
  static final PrintStream notes = System.err;
  static final InputStream in = System.in;

  static String get(String flag, String otherwise) { return job.getOrDefault(flag, otherwise); }
  static int number(String flag) { return Integer.parseInt(get(flag, "0")); }
  static String value(int i) { return "v-" + i + "-" + "abcdefghij".repeat(10); }

  static synchronized void emit(String event, String more) { events.println("{\"event\":\"" + event + "\"" + more + "}"); }

  /** What Go prints: 0s, 2ms, 1.5s. */
  static long milliseconds(String text) {
    return text.endsWith("ms") ? Long.parseLong(text.substring(0, text.length() - 2)) : (long) (1000 * Double.parseDouble(text.substring(0, text.length() - 1)));
  }

  /** The end of a tool, which would otherwise be the end of this process. Some tools catch it and end once more: the first code counts. */
  static class Ended extends RuntimeException {
    private static final long serialVersionUID = 1;
    final int code;
    Ended(int code, String message) { super("exit code " + code + (message == null ? "" : ": " + message)); this.code = code; }
  }

  static final ThreadLocal<Ended> ended = new ThreadLocal<>();

  /** Where each thread's output goes, that for errors too; what does not come from a tool goes to standard error. */
  static final ThreadLocal<OutputStream> output = ThreadLocal.withInitial(() -> notes);

  /** Runs a tool of org.apache.kafka.tools; what it prints goes to out. */
  static void run(OutputStream out, String tool, String... args) throws Exception {
    List<String> all = new ArrayList<>(List.of("--bootstrap-server", get("bootstrap", "")));
    all.addAll(List.of(args));
    output.set(out);
    try {
      Class.forName("org.apache.kafka.tools." + tool).getMethod("main", String[].class).invoke(null, (Object) all.toArray(String[]::new));
    } catch (InvocationTargetException e) {
      Throwable cause = ended.get() == null ? e.getCause() : ended.get();
      if (!(cause instanceof Ended) || ((Ended) cause).code != 0) throw new Exception(tool + " " + all + ": " + cause + "; it printed: " + out, cause);
    } finally {
      System.out.flush();
      System.err.flush();
      output.remove();
      ended.remove();
    }
  }

  /** Runs a tool and gives what it printed. Some tools tell of errors only there. */
  static String printed(String tool, String... args) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    run(out, tool, args);
    String text = out.toString(StandardCharsets.UTF_8);
    if (text.contains("Error:") || text.contains("Error while")) throw new Exception(tool + " " + Arrays.toString(args) + " printed: " + text);
    return text;
  }

  /** Gives each line to someone as soon as it is whole. */
  static OutputStream lines(Consumer<String> each) {
    return new OutputStream() {
      final ByteArrayOutputStream line = new ByteArrayOutputStream();
      @Override public void write(int b) {
        if (b != '\n') {
          line.write(b);
          return;
        }
        each.accept(line.toString(StandardCharsets.UTF_8));
        line.reset();
      }
    };
  }

  /** The console producer reads its records from standard input, and with --sync it asks for the next line when the one before is acknowledged. */
  static void produce() throws Exception {
    int from = number("from"), end = from + number("count");
    long pace = milliseconds(get("pace", "0s"));
    System.setIn(new InputStream() {
      int next = from;
      byte[] rest = {};

      @Override public int read() { throw new IllegalStateException("the tool reads whole buffers"); }

      @Override public int read(byte[] into, int at, int length) {
        if (rest.length == 0) {
          if (next > from) emit("acked", ",\"offset\":-1");
          if (next == end) return -1;
          try {
            Thread.sleep(pace);
          } catch (InterruptedException e) {
            return -1;
          }
          rest = ("k-" + next + "\t" + value(next) + "\n").getBytes(StandardCharsets.UTF_8);
          next++;
        }
        int n = Math.min(length, rest.length);
        System.arraycopy(rest, 0, into, at, n);
        rest = Arrays.copyOfRange(rest, n, rest.length);
        return n;
      }
    });
    run(OutputStream.nullOutputStream(), "ConsoleProducer", "--topic", get("topic", ""), "--sync", "--timeout", "0", "--compression-codec", get("compression", "none"),
        "--reader-property", "parse.key=true", "--message-send-max-retries", "1000", "--request-timeout-ms", "5000",
        "--command-property", "enable.idempotence=" + job.containsKey("idempotent"));
  }

  static final Pattern record = Pattern.compile("Partition:(\\d+)\tOffset:(\\d+)\t(.*)");

  static void take(String line) {
    Matcher m = record.matcher(line);
    if (m.matches()) emit("record", ",\"partition\":" + m.group(1) + ",\"offset\":" + m.group(2) + ",\"value\":\"" + m.group(3) + "\"");
  }

  static void consume() throws Exception {
    String id = "client-" + ProcessHandle.current().pid(), protocol = get("protocol", "classic");
    List<String> args = new ArrayList<>(List.of("--topic", get("topic", ""), "--group", get("group", ""), "--from-beginning",
        "--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true",
        "--command-property", "client.id=" + id, "--command-property", "group.protocol=" + protocol, "--command-property", "metadata.max.age.ms=1000"));
    if (protocol.equals("classic")) {
      String assignor = Map.of("range", "RangeAssignor", "roundrobin", "RoundRobinAssignor", "sticky", "StickyAssignor", "cooperative-sticky", "CooperativeStickyAssignor").get(get("assignor", ""));
      args.addAll(List.of("--command-property", "session.timeout.ms=6000", "--command-property", "heartbeat.interval.ms=500",
          "--command-property", "partition.assignment.strategy=org.apache.kafka.clients.consumer." + assignor));
    }
    if (number("count") > 0) args.addAll(List.of("--max-messages", get("count", "")));
    Thread watcher = new Thread(() -> watch(id));
    watcher.setDaemon(true);
    watcher.start();
    run(lines(Main::take), "consumer.ConsoleConsumer", args.toArray(String[]::new)); // commits when it ends, also when it is told to by a signal
  }

  /** The console consumer does not tell what it is assigned; kafka-consumer-groups does. */
  static void watch(String id) {
    TreeSet<Integer> held = new TreeSet<>();
    for (; ; ) {
      try {
        Thread.sleep(200);
        TreeSet<Integer> now = assigned(id);
        if (!now.equals(held)) emit("assigned", ",\"partitions\":" + now);
        held = now;
      } catch (InterruptedException e) {
        return;
      } catch (Exception e) {
        System.err.println("kafka-consumer-groups: " + e); // not while the group has no coordinator
      }
    }
  }

  static TreeSet<Integer> assigned(String id) throws Exception {
    TreeSet<Integer> held = new TreeSet<>();
    List<String> head = List.of();
    for (String line : printed("consumer.group.ConsumerGroupCommand", "--describe", "--members", "--verbose", "--group", get("group", "")).split("\n")) {
      List<String> fields = List.of(line.trim().split("\\s+"));
      if (fields.get(0).equals("GROUP")) head = fields;
      if (head.isEmpty() || !fields.contains(id)) continue;
      // topic:0,1,2, or - for none
      String[] at = fields.get(head.indexOf("CURRENT-ASSIGNMENT")).split(":");
      if (at.length == 2) Arrays.stream(at[1].split(",")).map(Integer::valueOf).forEach(held::add);
    }
    return held;
  }

  interface Call { void call() throws Exception; }

  static void patiently(String what, Call attempt) throws Exception {
    for (long until = System.currentTimeMillis() + 120_000; ; Thread.sleep(100)) {
      try {
        attempt.call();
        return;
      } catch (Exception e) {
        if (System.currentTimeMillis() > until) throw new Exception(what, e);
      }
    }
  }

  /** What people do with these tools: set a group's offsets to a time, and consume as that group. kafka-get-offsets tells the same offsets. */
  static void seek() throws Exception {
    String topic = get("topic", ""), group = topic + "-group", time = get("time", "0");
    Map<String, String> found = new HashMap<>();
    patiently("offsets by time", () -> {
      for (String line : printed("GetOffsetShell", "--topic", topic, "--time", time).split("\n")) {
        String[] parts = line.split(":");
        found.put(parts[1], parts[2]);
      }
    });
    found.forEach((partition, offset) -> emit("offset", ",\"partition\":" + partition + ",\"offset\":" + offset));
    String at = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS").withZone(ZoneOffset.UTC).format(Instant.ofEpochMilli(Long.parseLong(time)));
    patiently("reset offsets", () -> expect(printed("consumer.group.ConsumerGroupCommand", "--reset-offsets", "--to-datetime", at, "--execute", "--group", group, "--topic", topic), "NEW-OFFSET"));
    run(lines(Main::take), "consumer.ConsoleConsumer", "--topic", topic, "--group", group, "--max-messages", get("count", ""),
        "--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true");
  }

  static void expect(String text, String part) throws Exception {
    if (!text.contains(part)) throw new Exception("printed: " + text + ", expected: " + part);
  }

  static void call(String name, Call c) throws Exception {
    patiently(name, c);
    emit("admin", ",\"value\":\"" + name + "\"");
  }

  /** Does what may have been done by an earlier try whose answer was lost. */
  static void unless(String done, Call c) throws Exception {
    try {
      c.call();
    } catch (Exception e) {
      if (!e.getMessage().contains(done)) throw e;
    }
  }

  static void admin() throws Exception {
    String groups = "consumer.group.ConsumerGroupCommand";
    for (int i = 0; i < number("count"); i++) {
      String topic = get("topic", "") + "-" + i, group = get("topic", "") + "-group-" + i;
      call("create a topic", () -> unless("already exists",
          () -> printed("TopicCommand", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "3", "--config", "retention.ms=3600000")));
      call("describe it", () -> expect(printed("TopicCommand", "--describe", "--topic", topic), "PartitionCount: 2"));
      call("read its configuration", () -> expect(printed("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", topic), "retention.ms=3600000"));
      call("add partitions", () -> unless("InvalidPartitionsException", () -> printed("TopicCommand", "--alter", "--topic", topic, "--partitions", "4")));
      call("describe the larger one", () -> expect(printed("TopicCommand", "--describe", "--topic", topic), "PartitionCount: 4"));
      call("alter its configuration", () -> printed("ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention.ms=7200000"));
      call("read the new configuration", () -> expect(printed("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", topic), "retention.ms=7200000"));
      call("offsets", () -> expect(printed("GetOffsetShell", "--topic", topic, "--time", "latest"), topic + ":3:0"));
      Path file = Files.createTempFile("delete-records", ".json");
      Files.writeString(file, "{\"version\":1,\"partitions\":[{\"topic\":\"" + topic + "\",\"partition\":0,\"offset\":-1}]}");
      call("delete records", () -> expect(printed("DeleteRecordsCommand", "--offset-json-file", file.toString()), "low_watermark: 0"));
      Files.delete(file);
      call("elect the preferred leader", () -> printed("LeaderElectionCommand", "--election-type", "preferred", "--topic", topic, "--partition", "0"));
      call("commit for a group without members", () -> expect(printed(groups, "--reset-offsets", "--to-earliest", "--execute", "--group", group, "--topic", topic), "NEW-OFFSET"));
      call("list groups", () -> expect(printed(groups, "--list"), group));
      call("describe the group", () -> expect(printed(groups, "--describe", "--state", "--group", group), " Empty "));
      call("delete an offset", () -> printed(groups, "--delete-offsets", "--group", group, "--topic", topic + ":0"));
      call("delete the group", () -> unless("GroupIdNotFoundException", () -> printed(groups, "--delete", "--group", group)));
      call("describe the quorum", () -> expect(printed("MetadataQuorumCommand", "describe", "--status"), "LeaderId:"));
      call("list versions", () -> expect(printed("BrokerApiVersionsCommand"), "Fetch(1): 4 to 18"));
      call("delete the topic", () -> printed("TopicCommand", "--delete", "--if-exists", "--topic", topic));
      Thread.sleep(milliseconds(get("pace", "0s")));
    }
  }

  public static void main(String[] args) throws Exception {
    for (int i = 1; i < args.length; i++) {
      String flag = args[i].substring(1);
      job.put(flag, flag.equals("idempotent") ? "true" : args[++i]);
    }
    for (Consumer<PrintStream> set : List.<Consumer<PrintStream>>of(System::setOut, System::setErr)) {
      set.accept(new PrintStream(new OutputStream() {
        @Override public void write(int b) throws IOException { output.get().write(b); }
        @Override public void write(byte[] b, int at, int n) throws IOException { output.get().write(b, at, n); }
      }, true));
    }
    Exit.setExitProcedure((code, message) -> {
      if (ended.get() == null) ended.set(new Ended(code, message));
      throw ended.get();
    });
    Thread listener = new Thread(() -> { // "stop" on standard input, or its end; then the tools' own hooks end them
      try (BufferedReader lines = new BufferedReader(new InputStreamReader(in))) {
        for (String line = lines.readLine(); line != null && !line.equals("stop"); line = lines.readLine()) { }
      } catch (IOException e) {
        System.err.println("standard input: " + e);
      }
      System.exit(0);
    });
    listener.setDaemon(true);
    listener.start();
    Properties about = new Properties();
    about.load(Exit.class.getResourceAsStream("/kafka/kafka-version.properties"));
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
