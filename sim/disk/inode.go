package disk

import "slices"

// inode is a file: its content as a process sees it, as it was flushed, and the changes in between.
type inode struct {
	content []byte
	flushed []byte
	changes []change
}

// change is one write or cut that has not been flushed.
type change struct {
	cut  bool
	size int64  // of the file afterwards
	at   int64  // of a write: where its first sector begins
	data []byte // of a write: the whole sectors that it touches, up to the end of the file, as they are afterwards; never changed
}

// write puts bytes into the file; behind its end come zeros.
func (f *inode) write(p []byte, at int64) {
	if len(p) == 0 {
		return
	}
	end := at + int64(len(p))
	if end > int64(len(f.content)) {
		f.content = append(f.content, make([]byte, end-int64(len(f.content)))...)
	}
	copy(f.content[at:], p)
	size := int64(len(f.content))
	first, last := at/SectorBytes*SectorBytes, min((end+SectorBytes-1)/SectorBytes*SectorBytes, size)
	f.changes = append(f.changes, change{size: size, at: first, data: slices.Clone(f.content[first:last])})
}

// cut makes the file so long.
func (f *inode) cut(size int64) {
	f.content = resized(f.content, size)
	f.changes = append(f.changes, change{cut: true, size: size})
}

// resized cuts bytes, or adds zeros.
func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// flush makes the sectors that were written durable, and only those: one whose flush has failed before is not among them.
func (f *inode) flush() {
	for _, c := range f.changes {
		f.flushed = resized(f.flushed, c.size)
		if !c.cut {
			copy(f.flushed[c.at:], c.data)
		}
	}
	f.changes = nil
}

// forget takes the changes for flushed that are not.
func (f *inode) forget() { f.changes = nil }

func (f *inode) flip(at int64, bits byte) {
	f.content = slices.Clone(f.content)
	f.content[at] ^= bits
	if at < int64(len(f.flushed)) {
		f.flushed = slices.Clone(f.flushed)
		f.flushed[at] ^= bits
	}
	for i := range f.changes {
		if c := &f.changes[i]; !c.cut && at >= c.at && at < c.at+int64(len(c.data)) {
			c.data = slices.Clone(c.data)
			c.data[at-c.at] ^= bits
		}
	}
}

// crash loses changes. First it is chosen how many of the cuts have happened; what was written behind a cut that has not happened has not happened either,
// since it lies in new sectors. Of what is left, the size is one that the file has had, and each sector is as it was at some time, all apart from each other.
func (f *inode) crash(path string, choose Choices) {
	left := f.changes
	var cuts []int
	for i, c := range left {
		if c.cut {
			cuts = append(cuts, i)
		}
	}
	if n := len(cuts); n > 0 {
		if happened := choose(Choice{What: Cut, Path: path, Of: n, Versions: n + 1}); happened < n {
			left = left[:cuts[happened]]
		}
	}
	sizes := []int64{int64(len(f.flushed))}
	versions := map[int64][][]byte{} // sector → what it can be beside what was flushed, oldest first
	base := f.flushed
	for _, c := range left {
		if c.cut {
			// Whatever was written before stays possible in front of the cut.
			base, sizes = resized(base, c.size), []int64{c.size}
			for _, s := range sorted(versions) {
				for i, v := range versions[s] {
					versions[s][i] = v[:max(0, min(int64(len(v)), c.size-s))]
				}
			}
			continue
		}
		if c.size != sizes[len(sizes)-1] {
			sizes = append(sizes, c.size)
		}
		for at := 0; at < len(c.data); at += SectorBytes {
			s := c.at + int64(at)
			versions[s] = append(versions[s], c.data[at:min(at+SectorBytes, len(c.data))])
		}
	}
	size := sizes[0]
	if n := len(sizes); n > 1 {
		size = sizes[choose(Choice{What: Size, Path: path, Of: n - 1, Versions: n})]
	}
	out := resized(slices.Clone(base), size)
	order := sorted(versions)
	for i, s := range order {
		v := choose(Choice{What: Sector, Path: path, Index: i, Of: len(order), Versions: len(versions[s]) + 1})
		if v > 0 && s < size {
			copy(out[s:], versions[s][v-1])
		}
	}
	f.content, f.flushed, f.changes = out, slices.Clone(out), nil
}

func sorted(m map[int64][][]byte) []int64 {
	out := make([]int64, 0, len(m))
	for s := range m { //order-free: sorted below
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func (f *inode) clone() *inode {
	return &inode{content: slices.Clone(f.content), flushed: slices.Clone(f.flushed), changes: slices.Clone(f.changes)}
}
