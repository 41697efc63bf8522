// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"os"
	"strings"
	"time"
)

// A StopMode is how a PostgreSQL server is asked to end.
type StopMode int

// The modes, from the kindest.
const (
	StopSmart     StopMode = iota // when all clients have gone
	StopFast                      // in order, having sent them away
	StopImmediate                 // at once: it recovers at its next start
)

// familyTimeout is how long the processes of a server may take to halt or to end
// after they were told.
const familyTimeout = 30 * time.Second

// Kill ends the server as a crash of its machine would, all of its processes at a
// moment. It may be paused, or have ended already. What it had put in unlogged
// tables is gone at its next start.
func (p *Postgres) Kill() {
	p.t.Helper()
	if p.ended() {
		return
	}
	if err := killFamily(p.Process.Pid()); err != nil {
		p.t.Errorf("kill postgres: %v", err)
	}
	p.Process.Kill()
}

// Stop asks the server to end, and waits until it has. The test fails if it has
// not within 30 s.
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

// Pause halts the server with all its processes: connections are taken by the
// system, and nothing is answered.
func (p *Postgres) Pause() {
	p.t.Helper()
	p.Process.paused.Store(true)
	if err := pauseFamily(p.Process.Pid()); err != nil {
		p.t.Errorf("pause postgres: %v", err)
	}
}

// Resume lets a paused server go on.
func (p *Postgres) Resume() {
	p.t.Helper()
	p.Process.paused.Store(false)
	if err := resumeFamily(p.Process.Pid()); err != nil {
		p.t.Errorf("resume postgres: %v", err)
	}
}

// Restart starts the server again, having killed it if need be, at the same
// address and with the same files, and waits until it answers.
func (p *Postgres) Restart() {
	p.t.Helper()
	p.Kill()
	p.launch()
	p.waitReady()
}

func (p *Postgres) ended() bool {
	select {
	case <-p.Process.Done():
		return true
	default:
		return false
	}
}

// end ends the server with the test. One that may end by itself leaves no shared
// memory behind.
func (p *Postgres) end() {
	if !p.ended() {
		if !p.Process.answers() {
			_ = resumeFamily(p.Process.Pid())
		}
		p.stop(StopImmediate)
	}
	p.Kill()
	p.forget()
}

// forget removes what a killed server has left in the system: a piece of shared
// memory by which another would notice that it still lives.
func (p *Postgres) forget() {
	text, err := os.ReadFile(p.DataDir + "/postmaster.pid")
	if err != nil {
		return // it ended in order
	}
	const line = 6 // key and id
	if lines := strings.Split(string(text), "\n"); len(lines) > line {
		if f := strings.Fields(lines[line]); len(f) == 2 {
			removeSharedMemory(f[1])
		}
	}
}
