package kafka

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ackproof/systems"
)

// formatBound is for Kafka's own tool, a JVM of 3 s on an idle machine.
const formatBound = 60 * time.Second

// format gives every node the folder of a new cluster. Kafka's own tool makes one for each version and set of features, and takes seconds of processor time; what it writes does
// not name the cluster or the node, but for one small file, so it is kept and copied.
func (c *Cluster) format(ctx context.Context) error {
	template, err := c.template(ctx)
	if err != nil {
		return err
	}
	c.id = randomID()
	for _, n := range c.nodes {
		if err := c.fill(n, template); err != nil {
			return err
		}
	}
	return nil
}

// fill puts the formatted folder into that of the node, as a folder of its own: each that is made has another id.
func (c *Cluster) fill(n *node, template string) error {
	if err := os.CopyFS(n.logs, os.DirFS(template)); err != nil {
		return fmt.Errorf("kafka: copy the formatted folder to %s: %w", n.Name(), err)
	}
	meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", c.id, n.ID(), randomID())
	if err := os.WriteFile(filepath.Join(n.logs, metaFile), []byte(meta), 0o644); err != nil {
		return fmt.Errorf("kafka: format the folder of %s: %w", n.Name(), err)
	}
	return nil
}

// Format implements systems.Formatter. A controller whose log is gone may vote twice, which its quorum does not claim to survive.
func (c *Cluster) Format(of systems.Node) error {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.ID() == of.ID() })
	switch {
	case i < 0:
		return fmt.Errorf("kafka: format the disk of %s: it is no node of this cluster", of.Name())
	case c.id == "":
		return fmt.Errorf("kafka: format the disk of %s: the cluster has not been started yet", of.Name())
	case c.nodes[i].role != brokerOnly:
		return fmt.Errorf("kafka: format the disk of %s: it is a controller, and one that has forgotten its votes may vote twice; expected a broker beside controllers of their own (setting controllers)", of.Name())
	}
	_, features := c.features()
	return c.fill(c.nodes[i], c.formatted(features))
}

const metaFile = "meta.properties"

// randomID is an id as Kafka draws them: 16 bytes in 22 letters. Those that begin with a dash are left out, as Kafka does.
func randomID() string {
	for {
		var raw [16]byte
		rand.Read(raw[:])
		if id := base64.RawURLEncoding.EncodeToString(raw[:]); id[0] != '-' {
			return id
		}
	}
}

// features are the flags of the format tool for the features of this cluster, and a name for the set.
func (c *Cluster) features() (flags []string, name string) {
	switch {
	case !c.in.Since(4, 0):
		return nil, "plain"
	case c.keepELR:
		return []string{"--feature", "eligible.leader.replicas.version=1"}, "elr"
	}
	return []string{"--feature", "eligible.leader.replicas.version=0"}, "no-elr"
}

// formatted is where the formatted folder for a set of features is kept.
func (c *Cluster) formatted(features string) string {
	return filepath.Join(c.in.Lasting, "formatted-"+features)
}

// template gives a formatted folder without its file of ids, made by Kafka's own tool unless it is there already.
func (c *Cluster) template(ctx context.Context) (string, error) {
	flags, name := c.features()
	final := c.formatted(name)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	c.o.Note("Kafka " + c.in.Version + ": formatting a folder, once for this version and set of features")
	if err := os.MkdirAll(c.in.Lasting, 0o755); err != nil {
		return "", fmt.Errorf("kafka: make the cache: %w", err)
	}
	work, err := os.MkdirTemp(c.in.Lasting, "formatting-")
	if err != nil {
		return "", fmt.Errorf("kafka: make a folder in the cache: %w", err)
	}
	defer os.RemoveAll(work)
	data, properties := filepath.Join(work, "data"), filepath.Join(work, propertiesFile)
	lines := strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:9093", "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
		"controller.listener.names=CONTROLLER", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "log.dirs=" + strings.ReplaceAll(data, `\`, `\\`),
	}, "\n")
	if err := os.WriteFile(properties, []byte(lines+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("kafka: format: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, formatBound)
	defer cancel()
	argv := append(c.java(), "-cp", c.in.ClassPath(), "kafka.tools.StorageTool", "format", "-t", randomID(), "-c", properties, "--ignore-formatted")
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], flags...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("kafka: format a folder with StorageTool: %w; it said:\n%s", errors.Join(err, ctx.Err()), lastLines(string(out), 10))
	}
	if err := os.Remove(filepath.Join(data, metaFile)); err != nil {
		return "", fmt.Errorf("kafka: format a folder with StorageTool: it left no %s: %w", metaFile, err)
	}
	if err := readable(data); err != nil {
		return "", fmt.Errorf("kafka: format: %w", err)
	}
	if err := os.Rename(data, final); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) { // another run was quicker
		return "", fmt.Errorf("kafka: keep the formatted folder: %w", err)
	}
	return final, nil
}

// readable lets other users read the folder: who runs the nodes may be none of those who fetched them.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
