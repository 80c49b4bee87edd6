package partition

import "ackproof/broker/storage"

// epochList is the history of leader epochs: for each the offset where it began (R12, KIP-101). Ascending in both.
type epochList struct{ list []storage.EpochStart }

// assign notes that epoch begins at start, if that is news. Entries that it contradicts, those that begin at or above start, are of an empty
// leadership that nobody followed, and go. It reports false, and changes nothing, if a later epoch is known.
func (l *epochList) assign(epoch int32, start int64) bool {
	if n := len(l.list); n > 0 {
		switch last := l.list[n-1]; {
		case last.Epoch == epoch:
			return true
		case last.Epoch > epoch:
			return false
		}
	}
	l.dropFrom(start)
	l.list = append(l.list, storage.EpochStart{Epoch: epoch, Start: start})
	return true
}

// appended notes a batch that came from the log or from a leader. An epoch that is known to begin at or above it had no records, since
// it has none now: whoever led it alone and wrote nothing forgets it here.
func (l *epochList) appended(epoch int32, base int64) bool {
	if n := len(l.list); n > 0 && l.list[n-1].Epoch != epoch {
		l.dropFrom(base)
	}
	return l.assign(epoch, base)
}

// dropFrom removes the epochs that begin at or above the offset.
func (l *epochList) dropFrom(offset int64) {
	for n := len(l.list); n > 0 && l.list[n-1].Start >= offset; n-- {
		l.list = l.list[:n-1]
	}
}

// cutAbove removes the epochs that begin above the offset.
func (l *epochList) cutAbove(offset int64) { l.dropFrom(offset + 1) }

// trim forgets what lies wholly below the log start; the epoch that covers it now begins there.
func (l *epochList) trim(start int64) {
	for len(l.list) > 1 && l.list[1].Start <= start {
		l.list = l.list[1:]
	}
	if len(l.list) > 0 && l.list[0].Start < start {
		l.list[0].Start = start
	}
}

// last is the epoch of the last record below end, noEpoch in an empty log.
func (l *epochList) last(end int64) int32 {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].Start < end {
			return l.list[i].Epoch
		}
	}
	return noEpoch
}

// endOf answers where the largest epoch ≤ the asked one ends: the start of the next one, or the log end (R9). The epoch is
// noEpoch if every known epoch is larger.
func (l *epochList) endOf(epoch int32, end int64) (int32, int64) {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].Epoch <= epoch {
			if i+1 < len(l.list) {
				end = l.list[i+1].Start
			}
			return l.list[i].Epoch, end
		}
	}
	if len(l.list) > 0 {
		end = l.list[0].Start // the histories differ from the first record on
	}
	return noEpoch, end
}
