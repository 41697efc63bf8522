// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/atomicfile"
)

// Save writes the buckets that are not full, and the penalties, to the file at path, for [Restore] in another process. It replaces
// an existing file atomically when the new one is complete and on disk. Only the owner can read the file,
// because it contains the secret of the key hashes. A killed process may leave a file path.*.tmp behind.
//
// Takes continue during a save. A take that needs the lock of a shard waits for about ten microseconds, and for up
// to a hundred with sliding logs. Each bucket is saved at some instant during the save. The file is not a snapshot
// of one instant, and later takes are missing from it. To lose nothing, save after the last take. After a crash,
// each bucket gets back the tokens that were taken since the start of the last save.
//
// Save does not write the IDs of [mete.Mode.ID]: a retry after a restart is charged again.
//
// Concurrent calls wait for each other. Errors are the operating system's.
func (s *Store) Save(path string) (err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("memstore: save: %w", err)
		}
	}()
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, next, s.write)
}

var errInstant = errors.New("clock is out of range")

func (s *Store) write(f io.Writer) error {
	sum := sha256.New()
	e := encoder{to: io.MultiWriter(f, sum), saved: s.instant(), numbers: map[familyLimit]uint64{}}
	if e.saved < -maxInstant || e.saved > maxInstant {
		return errInstant
	}
	if _, err := fmt.Fprintf(e.to, "%s%d\n", formatName, formatVersion); err != nil {
		return err
	}
	secret := s.hasher.secret()
	if err := e.writeBlock(headBlock, append(binary.AppendVarint(nil, int64(e.saved)), secret[:]...)); err != nil {
		return err
	}
	if err := s.writeStates(&e); err != nil {
		return err
	}
	if err := s.writePenalties(&e); err != nil {
		return err
	}
	if err := s.writeSlots(&e); err != nil {
		return err
	}
	// Read the overload last: it then covers every overflow bucket in the file.
	overload := bucket.Instant(s.overload.Load())
	var tail []byte
	for _, at := range []bucket.Instant{overload, e.evictedAt} {
		tail = binary.AppendUvarint(tail, uint64(min(max(at-e.saved, 0), maxInstant)))
	}
	if err := e.writeBlock(tailBlock, tail); err != nil {
		return err
	}
	_, err := f.Write(sum.Sum(nil))
	return err
}

func (s *Store) writeStates(e *encoder) error {
	var c shardCopy
	for i := range s.shards {
		sh := &s.shards[i]
		c.copySlots(s, sh)
		now := s.instant()
		e.evictedAt = max(e.evictedAt, c.evictedAt, now)
		var one [1]bucket.Account
		for j := range c.slots {
			sl := &c.slots[j]
			one[0] = bucket.Account{Limit: sl.entry.limit, State: s.decodeCopy(sl, now)}
			if err := e.write(sl.hash(), sl.entry.family, one[:], now); err != nil {
				return err
			}
		}
		for c.copySideRows(s, sh) {
			for j := range c.rows {
				if err := e.write(c.rows[j].hash, c.rows[j].family, c.rows[j].row, now); err != nil {
					return err
				}
			}
		}
	}
	if len(e.states) == 0 {
		return nil
	}
	return e.writeBlock(statesBlock, e.states)
}

// write encodes a row unless it is full at now, and writes the block when it is long enough.
func (e *encoder) write(h hash, family string, row bucket.Row, now bucket.Instant) error {
	if isEvictable(row, now) {
		return nil
	}
	if !e.add(h, family, row) {
		return errInstant
	}
	if len(e.states) < flushSize {
		return nil
	}
	err := e.writeBlock(statesBlock, e.states)
	e.states = e.states[:0]
	return err
}

// isEvictable reports whether a row can be left out at now and come back as a full one. A row that is full only
// at a future instant cannot: its time would run back.
func isEvictable(row bucket.Row, now bucket.Instant) bool {
	for i := range row {
		if row[i].State.AsOf > now {
			return false
		}
	}
	return row.Full(now)
}
