//! From a request body to what a scheduler needs: model, prefix blocks, token estimate.
