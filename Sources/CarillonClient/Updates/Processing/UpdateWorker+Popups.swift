import CarillonBasics
import CarillonWire

/// The dialogs of popups, which wait for the user beside the other updates.
extension UpdateWorker {
    func show(_ popup: Popup, of update: WaitingUpdate) async throws(PushError) {
        guard try await inbox.setAway(update), case .popup(let shown) = update.update.kind else { return }
        waiting[update.key] = update
        // An update that is delivered again while its dialog waits keeps the dialog.
        if sideWork[update.key] == nil { _ = beginSideWork(of: update) }
        await perform(popups.added(update.key, shown))
    }

    private nonisolated func press(_ key: UpdateKey, _ dialog: SideWork) {
        jobsIn.yield { await self.pressed(key, dialog) }
    }

    private func pressed(_ key: UpdateKey, _ dialog: SideWork) async {
        // A press on a dismissed dialog does nothing, also if its update was delivered again.
        guard sideWork[key] === dialog else { return }
        await perform(popups.pressed(key))
    }

    func perform(_ actions: [PopupQueue.Action]) async {
        for action in actions {
            switch action {
            case .show(let key, let popup, let button):
                guard let dialog = sideWork[key] else { continue }
                await present(
                    PopupDialog(id: .init(key: key), popup: popup, button: button) { [weak self] id in
                        self?.press(id.key, dialog)
                    }, dialog)
            case .dismiss(let key): await app.presenter.dismiss(.init(key: key))
            case .download(let key, let attachment):
                guard let dialog = sideWork[key] else { continue }
                jobsIn.yield { await self.download(attachment, of: key, dialog) }
            case .confirm(let key, let attachment):
                guard let isStored = await storeResult(key, .done()) else { continue }
                await perform(popups.resultStored(key))
                if isStored, let attachment { await app.presenter.open(attachment) }
            case .fail(let key, let errors):
                let reason = errors.joined(separator: "; ")
                guard let isStored = await storeResult(key, .failed(isPermanent: false, reason: reason)) else { continue }
                await perform(popups.resultStored(key))
                guard isStored else { continue }
                await app.presenter.failed(
                    UpdateFailure(.processing, "What a popup brings along could not be downloaded: \(reason)"))
            }
        }
    }

    /// Shows a dialog, or a change of it. Each call is a start of the app's code.
    private func present(_ dialog: PopupDialog, _ work: SideWork) async {
        guard let update = waiting[dialog.id.key] else { return }
        displays += 1
        let number = displays
        guard await begin(update, work) else { return }
        // The dialog may have changed while the start was stored.
        if number == displays {
            let presenter = app.presenter
            await withTaskCancellationHandler {
                await presenter.show(dialog)
            } onCancel: {
                removeStart(of: update)
            }
        }
        await end(update)
    }

    /// Stores the result of a press. Returns false if the update was withdrawn meanwhile, and nil if the result could not be
    /// stored.
    private func storeResult(_ key: UpdateKey, _ outcome: UpdateOutcome) async -> Bool? {
        guard let update = waiting[key] else { return false }
        do {
            let isStored = try await finish(update, outcome)
            waiting[key] = nil
            endSideWork(of: key)
            return isStored
        } catch {
            popups.resultNotStored(key)
            await failed(UpdateFailure(.storage, error.message))
            return nil
        }
    }

    // MARK: Downloads

    private enum DownloadEnd: Sendable {
        case ready
        case failed(reason: String)
        /// The popup was removed.
        case unwanted
    }

    private func download(_ attachment: PushUpdate.Attachment, of key: UpdateKey, _ dialog: SideWork) async {
        guard let update = waiting[key], await begin(update, dialog) else { return }
        let steps = ProgressSteps()
        let (content, jobsIn) = (app.content, jobsIn)
        let result = await withTaskCancellationHandler { () async -> DownloadEnd in
            await withTaskGroup(of: DownloadEnd.self) { group -> DownloadEnd in
                group.addTask {
                    do {
                        try await content.download(attachment) { part in
                            guard steps.isNew(part) else { return }
                            jobsIn.yield { await self.progressed(key, to: part, dialog) }
                        }
                        return .ready
                    } catch {
                        return .failed(reason: Self.reason(of: error).1)
                    }
                }
                group.addTask {
                    await dialog.ended.wait()
                    return .unwanted
                }
                defer { group.cancelAll() }
                return await group.next() ?? .unwanted
            }
        } onCancel: {
            removeStart(of: update)
        }
        await end(update)
        guard !Task.isCancelled, sideWork[key] === dialog else { return }
        switch result {
        case .ready: await perform(popups.downloaded(key))
        case .failed(let reason): await perform(popups.downloaded(key, errors: [reason]))
        case .unwanted: break
        }
    }

    private func progressed(_ key: UpdateKey, to part: Double, _ dialog: SideWork) async {
        guard sideWork[key] === dialog else { return }
        await perform(popups.progressed(key, to: part))
    }
}
