import CarillonCore
package import CarillonWire
import Logging

extension Domain {
    /// Deletes an app, forgets its remembered values, and removes the first of its rows.
    ///
    /// A fault of the removal of rows is logged and not thrown: the app is deleted, and the sweep removes the rows.
    ///
    /// - Throws: ``Refusal`` if there is no such app, or the fault of the store. After a throw, the app is not deleted.
    package func deleteApp(_ app: AppID) async throws {
        let serial = try await apps.serial(of: app)
        try await apps.delete(app)
        if let serial { await forget(serial) }
        do {
            try await apps.beginDeletions()
        } catch {
            logger.warning(
                "cannot remove rows of deleted app; the sweep retries", metadata: ["app": "\(app)", "reason": "\(error)"])
        }
    }

    private func forget(_ app: AppSerial) async {
        await gateways.forget(app)
        users.forget(app)
        vetoes.forget(app)
        documents.forget(app)
        await itemEngine.forget(app)
    }
}
