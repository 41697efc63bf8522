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

const dataName = "data"

// cleanupScript is a shell script that waits for the end of its input, and thus of the test process. It then ends
// all servers in a directory and removes the directory.
const cleanupScript = `read -r _
for file in "$1"/*/` + dataName + `/postmaster.pid; do
	read -r pid <"$file" && kill -QUIT "$pid" && kill -CONT "$pid" || continue
	n=0
	while [ $n -lt 100 ] && kill -0 "$pid"; do n=$((n + 1)); sleep 0.1; done
done
rm -rf "$1"`

// postgresHome is the directory of all servers of this process. A shell that outlives the process removes it.
var postgresHome = sync.OnceValues(func() (string, error) {
	home, err := os.MkdirTemp("", "proctest-")
	if err != nil {
		return "", err
	}
	if err := giveToServant(home); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", cleanupScript, "sh", home)
	cmd.Dir = "/"
	setProcessGroup(cmd)
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

// keptOpen holds files that stay open until the process ends.
var keptOpen struct {
	sync.Mutex
	all []io.Closer
}

func keepUntilExit(c io.Closer) {
	keptOpen.Lock()
	defer keptOpen.Unlock()
	keptOpen.all = append(keptOpen.all, c)
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

// newPostgresDir makes a directory for a server. The server's files are in dataDir or, if it is empty, in a
// subdirectory.
func newPostgresDir(dataDir string) (string, error) {
	template, err := postgresTemplate()
	if err != nil {
		return "", err
	}
	dir, err := makeSubdirectory(filepath.Dir(template))
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
	if err := giveToServant(data); err != nil {
		return "", err
	}
	return dir, runDemoted(exec.Command("cp", "-R", template+"/.", data), dir)
}

// makeSubdirectory makes a directory that the server's user owns.
func makeSubdirectory(home string) (string, error) {
	dir, err := os.MkdirTemp(home, "")
	if err == nil {
		err = giveToServant(dir)
	}
	return dir, err
}

func removeAfter(t testing.TB, dir string) {
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
}

// giveToServant makes a directory private to the server's user.
func giveToServant(dir string) error {
	if err := chown(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

func runDemoted(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	demote(cmd)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, output)
	}
	return nil
}
