package program

import "runtime/debug"

// LibraryVersion gives the version of a module that this program is built with.
func LibraryVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "unknown"
}
