package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenState is how /proc/net/tcp calls a listening socket.
const listenState = "0A"

// listenerOf finds the process that listens on the port of an address of this machine. It needs /proc, and the right to look at the process.
func listenerOf(address string) (pid int, err error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, err
	}
	var sockets []string
	var failed error
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} { // a JVM listens on both at once
		found, err := listening(table, port)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = err
		}
		sockets = append(sockets, found...)
	}
	if len(sockets) == 0 {
		return 0, errors.Join(fmt.Errorf("nobody listens on port %d of this machine", port), failed)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is sound
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // closed meanwhile, or somebody else's
		}
		for _, s := range sockets {
			if target == "socket:["+s+"]" {
				return strconv.Atoi(strings.Split(link, "/")[2])
			}
		}
	}
	return 0, fmt.Errorf("no process that may be looked at has the socket of port %d", port)
}

// listening gives the inodes of the sockets that listen on the port.
func listening(table string, port uint64) (inodes []string, err error) {
	raw, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		// sl, local address, remote address, state, queues, timer, retransmits, uid, timeout, inode: man 5 proc_pid_net.
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != listenState {
			continue
		}
		_, local, _ := strings.Cut(fields[1], ":")
		if p, err := strconv.ParseUint(local, 16, 16); err == nil && p == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes, nil
}

// listeners finds the processes of all addresses.
func listeners(addresses []string) ([]int, error) {
	var pids []int
	for _, at := range addresses {
		pid, err := listenerOf(at)
		if err != nil {
			return nil, fmt.Errorf("process of %s: %w", at, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
