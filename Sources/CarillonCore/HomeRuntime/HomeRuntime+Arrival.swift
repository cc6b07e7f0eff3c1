extension HomeRuntime {
    /// The session joins after the proof was checked: an earlier join would let anybody end the session of a device.
    ///
    /// - Returns: Nil if there is no such device, or the proof is not valid.
    func arrival(
        of name: DeviceName, _ proof: DeviceProof, as session: any LiveSession, _ load: InboxLoad
    ) async throws -> ArrivedDevice? {
        // Reads can end in another order than that in which the connections were opened.
        let turn = sessions.nextTurn()
        let moment = sessions.changes.now()
        guard let first = try await inbox.arrival(of: name, load), admits(first.device, proof) else { return nil }
        let device = first.device.serial
        var arrived = first
        guard sessions.join(session, device: device, of: first.device.app, in: turn) else {
            // Withdrawals reach the session of the newer connection only.
            arrived.page = .unread
            return arrived
        }
        // The session is informed of each later change (`storedMore`). An earlier change that the page lacks is either still
        // queued, and then the session loads it, or was noted after `moment`, and then the page is read again. A change is
        // noted before it leaves the queue, so the queue is checked first.
        let isQueued = inbox.hasQueued(device)
        if sessions.changes.mayHaveChanged(device, since: moment)
            || sessions.changes.mayHaveChanged(allOf: first.device.app, since: moment)
        {
            var again = load
            // The session loads the page when the queue is empty.
            if isQueued { again.limit = 0 }
            guard let second = try await secondArrival(of: name, proof, as: session, device, again) else { return nil }
            arrived = second
        }
        if isQueued { arrived.page = .unread }
        return arrived
    }

    /// Reads the device again, because it can be deleted or have another credential since the first read. The session leaves
    /// in these cases.
    private func secondArrival(
        of name: DeviceName, _ proof: DeviceProof, as session: any LiveSession, _ device: DeviceSerial, _ load: InboxLoad
    ) async throws -> ArrivedDevice? {
        do {
            let second = try await inbox.arrival(of: name, load)
            if let second, second.device.serial == device, admits(second.device, proof) { return second }
        } catch {
            sessions.leave(session, device: device)
            throw error
        }
        sessions.leave(session, device: device)
        return nil
    }

    private func admits(_ device: Device, _ proof: DeviceProof) -> Bool {
        guard proof.isValid(for: device) else { return false }
        arrivalListener?.admitted(device, proof)
        return true
    }
}
