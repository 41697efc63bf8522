// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"os"
	"strings"
	"time"
)

// A StopMode is a shutdown mode of PostgreSQL.
type StopMode int

const (
	StopSmart     StopMode = iota // wait until all clients disconnect
	StopFast                      // disconnect all clients and shut down cleanly
	StopImmediate                 // exit at once; the next start recovers
)

// familyTimeout is the time limit for all processes of a server to stop or exit after a signal.
const familyTimeout = 30 * time.Second

// Kill ends all processes of the server immediately, as a crash of its machine would. The server may be paused or
// have exited. Unlogged tables are empty after the next start.
func (p *Postgres) Kill() {
	p.t.Helper()
	if p.hasEnded() {
		return
	}
	if err := killFamily(p.Process.Pid()); err != nil {
		p.t.Errorf("kill postgres: %v", err)
	}
	p.Process.Kill()
}

// Stop shuts the server down and waits until it has exited. The test fails after 30 s.
func (p *Postgres) Stop(mode StopMode) {
	p.t.Helper()
	if !p.stop(mode) {
		p.t.Errorf("postgres did not end within %v of being asked", familyTimeout)
	}
}

func (p *Postgres) stop(mode StopMode) bool {
	p.Process.Signal(stopSignals[mode])
	select {
	case <-p.Process.Done():
		return true
	case <-time.After(familyTimeout):
		return false
	}
}

// Pause stops all processes of the server: the system accepts connections, and the server does not answer.
func (p *Postgres) Pause() {
	p.t.Helper()
	p.Process.paused.Store(true)
	if err := pauseFamily(p.Process.Pid()); err != nil {
		p.t.Errorf("pause postgres: %v", err)
	}
}

// Resume continues a paused server.
func (p *Postgres) Resume() {
	p.t.Helper()
	p.Process.paused.Store(false)
	if err := resumeFamily(p.Process.Pid()); err != nil {
		p.t.Errorf("resume postgres: %v", err)
	}
}

// Restart starts the server again at the same address with the same files, and waits until it answers. It
// kills the server first if it runs.
func (p *Postgres) Restart() {
	p.t.Helper()
	p.Kill()
	p.launch()
	p.waitReady()
}

func (p *Postgres) hasEnded() bool {
	select {
	case <-p.Process.Done():
		return true
	default:
		return false
	}
}

// end ends the server and removes its shared memory.
func (p *Postgres) end() {
	if !p.hasEnded() {
		if !p.Process.isRunning() {
			_ = resumeFamily(p.Process.Pid())
		}
		p.stop(StopImmediate)
	}
	p.Kill()
	p.removeMemory()
}

// removeMemory removes the shared memory of a killed server. A new server would refuse to start with it.
func (p *Postgres) removeMemory() {
	text, err := os.ReadFile(p.DataDir + "/postmaster.pid")
	if err != nil {
		return // it shut down cleanly
	}
	const line = 6 // the line with key and ID
	if lines := strings.Split(string(text), "\n"); len(lines) > line {
		if f := strings.Fields(lines[line]); len(f) == 2 {
			removeSharedMemory(f[1])
		}
	}
}
