"""The smallest page to compare with: a button, and one heatmap that changes with each click."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

st.session_state.setdefault("n", 0)


def _next() -> None:
    st.session_state.n += 1


st.button("next", on_click=_next)
weights = np.random.default_rng(st.session_state.n).random((11, 11), dtype=np.float32)
st.plotly_chart(go.Figure(go.Heatmap(z=weights), layout={"height": 620}), key="head-map", theme=None)
