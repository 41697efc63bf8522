// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// dataName is the directory of a server's files, in that of the server.
const dataName = "data"

// farewell ends what runs in a directory, and removes it, when its input ends:
// when the tests have, in whatever way.
const farewell = `read -r _
for file in "$1"/*/` + dataName + `/postmaster.pid; do
	read -r pid <"$file" && kill -QUIT "$pid" && kill -CONT "$pid" || continue
	n=0
	while [ $n -lt 100 ] && kill -0 "$pid"; do n=$((n + 1)); sleep 0.1; done
done
rm -rf "$1"`

// postgresHome is the directory of all servers of this process. A shell that
// outlives the process removes it.
var postgresHome = sync.OnceValues(func() (string, error) {
	home, err := os.MkdirTemp("", "proctest-")
	if err != nil {
		return "", err
	}
	if err := give(home); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", farewell, "sh", home)
	cmd.Dir = "/"
	separate(cmd)
	demote(cmd)
	input, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start sh: %w", err)
	}
	keepUntilExit(input)
	return home, nil
})

// untilExit are open as long as the process lives.
var untilExit struct {
	sync.Mutex
	all []io.Closer
}

func keepUntilExit(c io.Closer) {
	untilExit.Lock()
	defer untilExit.Unlock()
	untilExit.all = append(untilExit.all, c)
}

// postgresTemplate is a directory with the files of a server that has never run.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	home, err := postgresHome()
	if err != nil {
		return "", err
	}
	program, err := findPostgres("initdb", "postgresql")
	if err != nil {
		return "", err
	}
	template := filepath.Join(home, "template")
	cmd := exec.Command(program, "-D", template, "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale=C.UTF-8", "--no-sync", "--no-instructions")
	return template, runDemoted(cmd, home)
})

// newPostgresDir makes a directory for a server, with its files, which are in
// dataDir unless that is empty.
func newPostgresDir(dataDir string) (string, error) {
	template, err := postgresTemplate()
	if err != nil {
		return "", err
	}
	dir, err := subdirectory(filepath.Dir(template))
	if err != nil {
		return "", err
	}
	data := filepath.Join(dir, dataName)
	if dataDir == "" {
		err = os.Mkdir(data, 0o700)
	} else {
		err = os.Symlink(dataDir, data)
	}
	if err != nil {
		return "", err
	}
	if err := give(data); err != nil {
		return "", err
	}
	return dir, runDemoted(exec.Command("cp", "-R", template+"/.", data), dir)
}

// subdirectory makes one that is the server's user's.
func subdirectory(home string) (string, error) {
	dir, err := os.MkdirTemp(home, "")
	if err == nil {
		err = give(dir)
	}
	return dir, err
}

// removeWith removes a directory with the test.
func removeWith(t testing.TB, dir string) {
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
}

// give makes a directory the server's user's, and nobody else's.
func give(dir string) error {
	if err := chown(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// runDemoted runs a command as the server's user.
func runDemoted(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	demote(cmd)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, output)
	}
	return nil
}
