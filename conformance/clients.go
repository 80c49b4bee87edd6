package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// client is a library under test and its program.
type client struct {
	name  string
	about string // what it stands for
	// prepare builds or installs the program below dir and gives its command.
	prepare func(ctx context.Context, dir string) ([]string, error)

	idempotent bool     // its producer can be
	noCodecs   []string // compressions that it has not
	assignors  []string // of the classic protocol; the first is its default
	noKIP848   string   // why it is left out
	noAdmin    string
	quietEnd   string // why members are told to stop only when there is nothing to take
}

var clients = []client{
	{
		name: "franz-go", about: "Go", prepare: goProgram("franz"), idempotent: true, assignors: []string{"range", "cooperative-sticky", "sticky", "roundrobin"},
	},
	{
		name: "java", about: "Kafka's own client", prepare: javaProgram("java"), idempotent: true, assignors: []string{"range", "cooperative-sticky", "sticky", "roundrobin"},
	},
	{
		name: "console", about: "the console tools that come with Kafka", prepare: javaProgram("console"), idempotent: true,
		assignors: []string{"range", "cooperative-sticky", "sticky", "roundrobin"},
	},
	{
		name: "kcat", about: "the shell's; librdkafka as the system has it", prepare: installed("kcat", goProgram("kcat")), idempotent: true,
		assignors: []string{"range", "roundrobin", "cooperative-sticky"}, noKIP848: "librdkafka 2.0 has not got it", noAdmin: "kcat lists and asks only",
		quietEnd: "a record that comes in while kcat ends is committed, but not printed",
	},
	{
		name: "confluent", about: "Go, confluent-kafka-go with its own librdkafka; needs cgo", prepare: goProgram("confluent"), idempotent: true,
		assignors: []string{"range", "roundrobin", "cooperative-sticky"},
	},
	{
		name: "kafkajs", about: "JavaScript", prepare: kafkajs, idempotent: true, noCodecs: []string{"lz4", "zstd"}, assignors: []string{"roundrobin"},
		noKIP848: "the library has not got it",
	},
	{
		name: "sarama", about: "Go, as to a broker of version 2.8, its default", prepare: goProgram("sarama"), idempotent: true,
		assignors: []string{"range", "sticky", "roundrobin"}, noKIP848: "the library has not got it",
	},
	{
		name: "sarama-max", about: "Go, as to the newest broker that it knows", prepare: with("SARAMA_VERSION=max", goProgram("sarama")), idempotent: true,
		assignors: []string{"range", "sticky", "roundrobin"}, noKIP848: "the library has not got it",
	},
	{
		name: "segmentio", about: "Go, segmentio/kafka-go", prepare: goProgram("segmentio"), assignors: []string{"range", "roundrobin"}, noKIP848: "the library has not got it",
	},
}

// goProgram builds a program of this module.
func goProgram(name string) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, dir string) ([]string, error) {
		binary := filepath.Join(dir, name)
		return []string{binary}, tool(ctx, ".", "go", "build", "-o", binary, "./clients/"+name)
	}
}

// installed demands a tool before it prepares.
func installed(name string, prepare func(context.Context, string) ([]string, error)) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, dir string) ([]string, error) {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w; it must be installed", err)
		}
		return prepare(ctx, dir)
	}
}

// kafkajs installs the library beside a copy of its program.
func kafkajs(ctx context.Context, dir string) ([]string, error) {
	if err := os.CopyFS(filepath.Join(dir, "program"), os.DirFS("clients/kafkajs")); err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "program", "main.js")
	return []string{"node", script}, tool(ctx, filepath.Dir(script), "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
}

// javaProgram gets the libraries of a program with Maven and compiles it.
func javaProgram(name string) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, dir string) ([]string, error) {
		source, lib, classes := filepath.Join("clients", name), filepath.Join(dir, "lib"), filepath.Join(dir, "classes")
		if err := tool(ctx, source, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+lib); err != nil {
			return nil, err
		}
		if err := tool(ctx, source, "javac", "-cp", filepath.Join(lib, "*"), "-d", classes, "Main.java"); err != nil {
			return nil, err
		}
		return []string{"java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes + ":" + filepath.Join(lib, "*"), "Main"}, nil
	}
}

// with sets a variable of the program's environment.
func with(variable string, prepare func(context.Context, string) ([]string, error)) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, dir string) ([]string, error) {
		command, err := prepare(ctx, dir)
		return append([]string{"env", variable}, command...), err
	}
}

// tool runs a tool to its end.
func tool(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %.2000s", name, args, err, out)
	}
	return nil
}
