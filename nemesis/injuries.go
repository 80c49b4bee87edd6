package nemesis

// newInjury gives the work of the fault's kind.
func newInjury(w wound) injury {
	switch w.l.fault.Kind {
	case Kill:
		return &kill{wound: w}
	case Pause:
		return &pause{wound: w}
	case PowerLoss:
		return &powerLoss{kill: kill{wound: w}}
	case DiskWipe, BitFlip, Truncate:
		return &damage{kill: kill{wound: w}}
	case DiskError, FlushError, FlushLie, DiskFull, DiskSlow:
		return &badDisk{wound: w}
	case MachineDeath:
		return &machineDeath{wound: w}
	case CrashAtCall, ErrorAtCall:
		return newAtCall(w)
	case CPUStarve:
		return &starved{wound: w}
	case Descriptors:
		return &noDescriptors{wound: w}
	case Memory:
		return &noMemory{kill{wound: w}}
	case ClockSkew, ClockDrift, ClockStrobe:
		return &wrongClock{wound: w}
	}
	if w.l.fault.Kind.OnPackets() {
		return newBadPackets(w)
	}
	return newPartition(w)
}
