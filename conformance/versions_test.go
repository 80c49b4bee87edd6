package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUsedVersions(t *testing.T) {
	dir := t.TempDir()
	if _, err := usedVersions(dir); err == nil {
		t.Error("no logs, and no error")
	}
	if err := os.MkdirAll(filepath.Join(dir, "broker-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	log := `time=x level=DEBUG msg="first request of its kind" node=3 peer=127.0.0.1:1 api_key=0 api=Produce version=13 too_new=false client_id=client
time=x level=DEBUG msg="first request of its kind" node=3 peer=127.0.0.1:1 api_key=0 api=Produce version=12 too_new=false client_id=client
time=x level=DEBUG msg="first request of its kind" node=3 peer=127.0.0.1:1 api_key=1 api=Fetch version=18 too_new=false client_id=broker-2
time=x level=DEBUG msg="first request of its kind" node=3 peer=127.0.0.1:1 api_key=3 api=Metadata version=13 too_new=false client_id=conformance-judge
time=x level=DEBUG msg="first request of its kind" node=3 peer=127.0.0.1:1 api_key=18 api=ApiVersions version=0 too_new=true client_id=""
time=x level=DEBUG msg="connection ended" node=3
`
	if err := os.WriteFile(filepath.Join(dir, "broker-1", "broker.log"), []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	used, err := usedVersions(dir)
	if err != nil || len(used) != 1 || used[0] == nil || used[0].name != "Produce" || len(used[0].seen) != 2 || !used[0].seen[12] || !used[0].seen[13] {
		t.Errorf("%+v, %v; want Produce v12 and v13 only", used, err)
	}
}
