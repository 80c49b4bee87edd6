//go:build failpoints

package wal

import (
	"testing"

	"ackproof/broker/storage/storagetest"
)

// TestDamagePlants: B14 and B15 change what recovery makes of damage.
func TestDamagePlants(t *testing.T) { storagetest.RunDamagePlants(t, walFiles) }
