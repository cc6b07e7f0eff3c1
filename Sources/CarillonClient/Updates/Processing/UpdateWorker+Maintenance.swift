import CarillonBasics
import CarillonWire
import Logging

/// The handling of a maintenance, from its announcement to its end.
extension UpdateWorker {
    func setMode(_ mode: SyncMode) async throws {
        guard try await app.content.mode() != mode else { return }
        modeSetByWorker = mode
        try await app.content.setMode(mode)
    }

    /// Runs one change of the maintenance at a time, because a change consists of a read and a write.
    private func maintain<Value: Sendable, Fault: Error>(
        _ body: () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        while let maintaining { await maintaining.value }
        let (done, isDone) = AsyncStream.makeStream(of: Never.self)
        // The task ends with the body.
        maintaining = Task { for await _ in done {} }
        defer {
            maintaining = nil
            isDone.finish()
        }
        return try await body()
    }

    func enterMaintenance(_ from: Int64?, _ until: Int64?, for update: WaitingUpdate) async throws {
        let now = try await now()
        if let until, until <= now { return }
        try await maintain { () async throws in
            var maintenance = try await inbox.maintenance() ?? .init(beginsAt: from ?? now)
            maintenance.beginsAt = from ?? now
            maintenance.endsAt = until
            guard try await inbox.setMaintenance(maintenance, announcedBy: update) else { return }
            _ = try await doDueWork(maintenance)
        }
        maintenanceChanges.send()
    }

    func finishMaintenance() async throws {
        try await maintain { () async throws in
            guard var maintenance = try await inbox.maintenance() else { return }
            // If the process ends from here on, the next one continues with the end of the maintenance.
            maintenance.endsAt = try await now()
            try await inbox.setMaintenance(maintenance)
            _ = try await doDueWork(maintenance)
        }
        maintenanceChanges.send()
    }

    /// The user chose a mode, which is not changed at the end of a maintenance.
    func modeChosen() async throws(PushError) {
        try await maintain { () async throws(PushError) in
            guard var maintenance = try await inbox.maintenance(), maintenance.hasBegun else { return }
            maintenance.modeBefore = nil
            try await inbox.setMaintenance(maintenance)
        }
    }

    /// Returns the seconds until a moment by the server's clock.
    func seconds(until moment: Int64) async throws(PushError) -> Double { Double(moment - (try await now())) / 1000 }

    /// Makes the changes that are due. Returns the time of the next change by the server's clock, in milliseconds since 1970.
    func advanceMaintenance() async throws -> Int64? {
        try await maintain { () async throws -> Int64? in
            guard var maintenance = try await inbox.maintenance() else { return nil }
            let starts = maintenance.starts
            guard !HandlerStarts.isCrashing(starts) else {
                try await failPermanently(maintenance)
                return nil
            }
            maintenance.starts += 1
            try await inbox.setMaintenanceStarts(maintenance.starts)
            let started = maintenance
            let result = await withTaskCancellationHandler { () async -> Result<Int64?, any Error> in
                do {
                    return .success(try await doDueWork(started))
                } catch {
                    return .failure(error)
                }
            } onCancel: { [inbox, logger] in
                inbox.scheduleMaintenanceStarts(starts, logger: logger)
            }
            try await inbox.setMaintenanceStarts(starts)
            return try result.get()
        }
    }

    /// Removes a maintenance for which the app's content ended the process too often.
    private func failPermanently(_ maintenance: UpdateInbox.Maintenance) async throws {
        try await inbox.setMaintenance(nil)
        failures.maintenanceEnded(at: .now)
        try await inbox.happened(.maintenanceOver)
        arrivals.send()
        logger.error(
            "the app ended while the mode of its content was changed for a maintenance; the maintenance is forgotten",
            metadata: ["starts": "\(maintenance.starts)"])
        await app.presenter.failed(
            UpdateFailure(
                .processing,
                "The app ended \(maintenance.starts) times while its content was changed for a maintenance. The maintenance is forgotten."
            ))
    }

    private func doDueWork(_ known: UpdateInbox.Maintenance) async throws -> Int64? {
        var maintenance = known
        let now = try await now()
        if let end = maintenance.endsAt, end <= now {
            if maintenance.hasBegun, let mode = maintenance.modeBefore, try await app.content.mode() == .offline {
                try await setMode(mode)
            }
            try await inbox.setMaintenance(nil)
            failures.maintenanceEnded(at: .now)
            try await inbox.happened(.maintenanceOver)
            arrivals.send()
            return nil
        }
        if !maintenance.hasBegun {
            guard maintenance.beginsAt <= now else { return maintenance.beginsAt }
            if try await app.content.mode() == .preparing { try await app.content.cancelPreparing() }
            maintenance.hasBegun = true
            maintenance.modeBefore = try await app.content.mode()
            try await inbox.setMaintenance(maintenance)
        }
        failures.maintenanceBegan()
        // The content is offline until the user chooses another mode. An ended process may not have changed the mode.
        if maintenance.modeBefore != nil { try await setMode(.offline) }
        return maintenance.endsAt
    }
}
