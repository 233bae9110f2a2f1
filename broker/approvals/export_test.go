package approvals

// KeepClosed has memory keep so many approvals that have ended.
func (a *Approvals) KeepClosed(n int) {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	a.queue.maxClosed = n
	a.queue.trim()
}

// InMemory is how many approvals and cases memory has.
func (a *Approvals) InMemory() (approvals, cases int) {
	a.queue.mu.RLock()
	defer a.queue.mu.RUnlock()
	a.cases.mu.RLock()
	defer a.cases.mu.RUnlock()
	return len(a.queue.byID), len(a.cases.byID)
}
