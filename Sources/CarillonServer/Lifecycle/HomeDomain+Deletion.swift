import CarillonCore
package import CarillonWire
import Logging

extension HomeDomain {
    /// Deletes an app, removes its cached values at all homes, and removes the first of its rows.
    ///
    /// A fault during the removal of rows is logged and not thrown: the app is deleted, and the sweep removes the rows.
    ///
    /// - Throws: ``Refusal`` if the app does not exist, or the fault of the store. In both cases the app is not deleted.
    ///   ``StoreFault`` also if another home did not answer. In this case the app is deleted, and that home can have cached
    ///   values of it until the sweep notifies the home again.
    package func deleteApp(_ app: AppID) async throws {
        let serial = try await shared.apps.serial(of: app)
        try await deletions.delete(app)
        var unanswered: (any Error)?
        if let serial {
            await forget(serial)
            do { try await deletions.notify(serial) } catch { unanswered = error }
        }
        do {
            try await deletions.begin()
        } catch {
            shared.logger.warning(
                "cannot remove rows of deleted app; the sweep retries", metadata: ["app": "\(app)", "reason": "\(error)"])
        }
        if let unanswered { throw unanswered }
    }

    /// Removes the cached values of a deleted app.
    func forget(_ app: AppSerial) async {
        await shared.gateways.forget(app)
        shared.users.forget(app)
        shared.approvalHooks.forget(app)
        shared.documents.forget(app)
        updateDelivery.forget(app)
        await itemEngine.forget(app)
    }
}
