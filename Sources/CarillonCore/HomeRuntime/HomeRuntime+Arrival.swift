extension HomeRuntime {
    /// Reads a device and its inbox, and lets the session join. The session joins after the check of the proof: if it joined
    /// earlier, anyone could end the session of a device.
    ///
    /// - Returns: The device, and whether the session joined. Nil if there is no such device, or the proof is not valid.
    /// - Throws: ``HomeFault`` also if another home has the device, or the device moves.
    func arrival(
        of name: DeviceName, _ proof: DeviceProof, as session: any LiveSession, _ load: PageRequest, openedAt: OpeningTime
    ) async throws -> (arrived: ArrivedDevice, isJoined: Bool)? {
        let moment = sessions.changes.now()
        guard let first = try await inbox.arrival(of: name, load), proof.isValid(for: first.device) else { return nil }
        let visit = Visit(name: name, proof: proof, session: session, load: load, openedAt: openedAt, moment: moment)
        guard let gate else { return try await join(first, visit) }
        let shard = Shard(of: first.device.serial)
        try await gate.enter(shard)
        defer { gate.leave(shard) }
        return try await join(first, visit)
    }

    private struct Visit {
        var name: DeviceName
        var proof: DeviceProof
        var session: any LiveSession
        var load: PageRequest
        /// The opening time of the connection. Reads can end in another order than the one in which the connections were opened.
        var openedAt: OpeningTime
        /// The moment before the first read.
        var moment: InboxChangeClock.Moment
    }

    private func join(
        _ first: ArrivedDevice, _ visit: Visit
    ) async throws -> (arrived: ArrivedDevice, isJoined: Bool)? {
        let (session, moment) = (visit.session, visit.moment)
        let device = first.device.serial
        arrivalListener?.admitted(first.device, visit.proof)
        var arrived = first
        guard sessions.join(session, device: device, of: first.device.app, openedAt: visit.openedAt) else {
            // The device can have sent results over the newer connection.
            arrived.page = .unread
            return (arrived, false)
        }
        // The session is informed of each later change (`storedMore`). An earlier change that the page lacks is either still
        // queued, and then the session loads it, or was noted after `moment`, and then the page is read again. A change is
        // noted before it leaves the queue, so the queue is checked first.
        let isQueued = inbox.hasQueued(device)
        if sessions.changes.mayHaveChanged(device, since: moment)
            || sessions.changes.mayHaveChanged(allOf: first.device.app, since: moment)
        {
            var again = visit.load
            // The session loads the page when the queue is empty.
            if isQueued { again.limit = 0 }
            guard let second = try await secondArrival(visit, device, again) else { return nil }
            arrived = second
        }
        if isQueued { arrived.page = .unread }
        return (arrived, true)
    }

    /// Reads the device again, because it can have been deleted or have another credential since the first read. In these cases,
    /// the session leaves.
    private func secondArrival(
        _ visit: Visit, _ device: DeviceSerial, _ load: PageRequest
    ) async throws -> ArrivedDevice? {
        do {
            let second = try await inbox.arrival(of: visit.name, load)
            if let second, second.device.serial == device, visit.proof.isValid(for: second.device) {
                arrivalListener?.admitted(second.device, visit.proof)
                return second
            }
        } catch {
            sessions.leave(visit.session, device: device)
            throw error
        }
        sessions.leave(visit.session, device: device)
        return nil
    }
}
