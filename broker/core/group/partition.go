package group

// PartitionOf is the partition of the internal topic that a group belongs to. It is Kafka's: the hash of Java's strings, over UTF-16, without its sign.
func PartitionOf(id string, partitions int) int32 {
	var h int32
	for _, r := range id {
		if r >= 1<<16 { // a pair of surrogates
			r -= 1 << 16
			h = 31*h + 0xd800 + r>>10
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	if h == -1<<31 {
		h = 0
	}
	return max(h, -h) % int32(partitions)
}
