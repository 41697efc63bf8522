// SPDX-License-Identifier: Apache-2.0

package mete

// Queues returns the number of queues and of waiters.
func (l *Limiter) Queues() (queues, waiters int) {
	for i := range l.queues.shards {
		part := &l.queues.shards[i]
		part.mu.Lock()
		for _, q := range part.queues {
			queues++
			for w := q.first; w != nil; w = w.next {
				waiters++
			}
		}
		part.mu.Unlock()
	}
	return queues, waiters
}
