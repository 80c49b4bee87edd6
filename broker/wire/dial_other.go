//go:build !linux

package wire

import "syscall"

// giveUpSilence leaves connections as they are on this system.
func giveUpSilence(string, string, syscall.RawConn) error { return nil }
