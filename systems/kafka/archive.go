package kafka

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"ackproof/systems"
	"ackproof/systems/process"
)

// archiveBound is for a cluster of one node that is started without an archive, used once and stopped; the stop writes the archive.
const archiveBound = 3 * time.Minute

// archive gives the flags that let a JVM take its classes from an archive (application class-data sharing), which takes two thirds off the processor time of every start. It is
// made once for each build of Java and class path; the JVM goes without one that does not fit. Needs Java 13.
func (c *Cluster) archive(ctx context.Context) ([]string, error) {
	build, err := exec.CommandContext(ctx, c.in.Java, "-version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("kafka: run %s -version: %w; it said: %s", c.in.Java, err, build)
	}
	sum := sha256.Sum256([]byte(c.in.Java + "\n" + string(build) + "\n" + c.in.ClassPath()))
	final := filepath.Join(c.in.Lasting, fmt.Sprintf("classes-%x.jsa", sum[:8]))
	flags := []string{"-XX:SharedArchiveFile=" + final, "-Xshare:auto"}
	if _, err := os.Stat(final); err == nil {
		return flags, nil
	}
	c.o.Note("Kafka " + c.in.Version + ": making an archive of its classes, once for this Java (half a minute or more)")
	ctx, cancel := context.WithTimeout(ctx, archiveBound)
	defer cancel()
	if err := c.makeArchive(ctx, final); err != nil {
		c.o.Note("Kafka " + c.in.Version + ": no archive of its classes, so nodes start slowly: " + err.Error())
		return nil, nil
	}
	return flags, nil
}

// makeArchive runs a small cluster of its own on loopback.
func (c *Cluster) makeArchive(ctx context.Context, final string) error {
	if err := os.MkdirAll(c.in.Lasting, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(c.in.Lasting, "archiving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	one := &Cluster{o: systems.Options{Dir: dir, Nodes: 1, Topic: "warm-up", Partitions: 1, Replication: 1, MinISR: 1, Acks: -1, Host: process.NewLoopback(), Note: c.o.Note},
		set: c.set, in: c.in, keepELR: c.keepELR}
	one.set.Controllers, one.set.MinISRIn = 0, inTopic
	if err := one.makeNodes(); err != nil {
		return err
	}
	defer one.Stop()
	one.askAll()
	if err := one.format(ctx); err != nil {
		return err
	}
	fresh := filepath.Join(dir, "classes.jsa")
	if err := one.prepare(one.nodes[0], []string{"-XX:ArchiveClassesAtExit=" + fresh}); err != nil {
		return err
	}
	if err := one.run(ctx); err != nil {
		return err
	}
	if err := one.nodes[0].Terminate(ctx); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o644); err != nil {
		return fmt.Errorf("the JVM left no archive: %w; its log ends with:\n%s", err, one.nodes[0].LogTail(10))
	}
	return os.Rename(fresh, final)
}
