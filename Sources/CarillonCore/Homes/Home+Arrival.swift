extension Home {
    package typealias Arrived = (device: Device, page: InboxPage, said: SaidRevisions)

    /// Lets in a device that says who it is: reads it with the first of what waits for it, checks it, and makes the connection its session.
    ///
    /// A connection that came before that of the device's session is ended with ``SessionEnd/replaced``.
    ///
    /// - Returns: Nil if there is no such device, or it is not the one. The page is ``InboxPage/unread`` if it must be loaded.
    package func arrival(
        of name: DeviceName, as session: any LiveSession, _ load: InboxLoad, if isRight: (Device) -> Bool
    ) async throws -> Arrived? {
        // Reads can end in another order than the connections came in.
        let turn = sessions.nextTurn()
        let moment = sessions.changes.now()
        guard let first = try await inbox.arrival(of: name, load), isRight(first.device) else { return nil }
        let device = first.device.serial
        var arrived = first
        guard sessions.join(session, device: device, of: first.device.app, in: turn) else {
            // Withdrawals reach the session of the newer connection only.
            arrived.page = .unread
            return arrived
        }
        // The session is told of each change from now on (`storedMore`). An earlier change that the page lacks is queued still, and the session
        // loads it, or was noted after `moment`, and the page is read again. A change is noted before it leaves the queue: asked in this order.
        let isQueued = inbox.hasQueued(device)
        if sessions.changes.mayHaveChanged(device, since: moment)
            || sessions.changes.mayHaveChanged(allOf: first.device.app, since: moment)
        {
            var again = load
            // The session loads the page when the queue is empty.
            if isQueued { again.limit = 0 }
            guard let second = try await secondArrival(of: name, as: session, device, again, if: isRight) else { return nil }
            arrived = second
        }
        if isQueued { arrived.page = .unread }
        return arrived
    }

    /// The device may have been deleted, or have another credential, since it was read first. Then the session leaves.
    private func secondArrival(
        of name: DeviceName, as session: any LiveSession, _ device: DeviceSerial, _ load: InboxLoad,
        if isRight: (Device) -> Bool
    ) async throws -> Arrived? {
        do {
            let second = try await inbox.arrival(of: name, load)
            if let second, second.device.serial == device, isRight(second.device) { return second }
        } catch {
            sessions.leave(session, device: device)
            throw error
        }
        sessions.leave(session, device: device)
        return nil
    }
}
