// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// A disk is a file system that can be filled and emptied.
type disk struct {
	dir        string // for a server's files
	fill, free func(s *proctest.Postgres)
}

// smallDisk mounts a file system in memory. Without the privilege, it returns a directory in which no file can
// grow while it is full.
func smallDisk(t *testing.T) disk {
	t.Helper()
	dir, err := os.MkdirTemp("", "mete-disk-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if exec.Command("mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", dir).Run() == nil {
		t.Cleanup(func() {
			faulttest.Eventually(t, "the disk is unmounted", exec.Command("umount", dir).Run)
		})
		return disk{mkdir(t, data), func(*proctest.Postgres) { ballast(t, dir) }, func(*proctest.Postgres) {
			if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
				t.Error(err)
			}
		}}
	}
	limit := func(s *proctest.Postgres, bytes string) { // except processes that have ended meanwhile
		const sh = `test $(id -u) != 0 || as="setpriv --reuid=$(stat -c %u "$3") --regid=$(stat -c %g "$3") --clear-groups"
			for pid in $1 $(pgrep -P $1); do $as prlimit --pid $pid --fsize=$2: || test ! -e /proc/$pid || exit; done`
		if output, err := exec.Command("sh", "-c", sh, "sh", fmt.Sprint(s.Process.Pid()), bytes, data).CombinedOutput(); err != nil {
			t.Fatalf("prlimit: %v\n%s", err, output)
		}
	}
	return disk{mkdir(t, data), func(s *proctest.Postgres) { limit(s, "100000") }, func(s *proctest.Postgres) { limit(s, "unlimited") }}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ballast fills all free space.
func ballast(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
}

// TestFault_DiskFull fills the disk. Takes that need space fail, and then the server, which cannot write its log.
// Acknowledged takes are present when space is free again.
func TestFault_DiskFull(t *testing.T) {
	faulttest.RunParallel(t)
	d := smallDisk(t)
	s := proctest.StartPostgresIn(t, d.dir, "max_wal_size=32MB", "min_wal_size=32MB", "wal_recycle=off")
	p := at(t, s.URL(), "", pgstore.Config{Durable: true})
	tr := startTraffic(t, p, plainAndOthers())
	tr.WaitAnswers(20)
	d.fill(s)
	said := ""
	faulttest.Eventually(t, "takes are refused", func() error {
		keys := make([]string, 400)
		for i := range keys {
			keys[i] = fmt.Sprintf("new:%p:%04d", &keys, i) + strings.Repeat("-", 400)
		}
		_, err := p.take(slowCharges(keys...), mete.Mode{})
		if err == nil || mete.Spent(err) != mete.NotSpent {
			return errors.Join(errors.New("take: want that it is not spent"), err)
		}
		said = err.Error()
		return nil
	})
	t.Log(said)
	_, _ = p.do("SELECT pg_switch_wal()")
	_, _ = p.do("SELECT pg_switch_wal()")
	tr.WaitCalls(3)
	d.free(s)
	faulttest.Eventually(t, "the server answers or has ended", func() error {
		select {
		case <-s.Process.Done():
			t.Log("the server has ended")
			s.Restart()
			return nil
		default:
			_, err := p.do("SELECT 1")
			return err
		}
	})
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckBound(0)
	tr.CheckConserved()
}
